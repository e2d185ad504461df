"""What is predicted: numbers with intervals, classes, several labels at once."""
