"""Recognition of file formats, and advice on files of other programs."""
