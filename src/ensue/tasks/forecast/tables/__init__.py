"""From tables to series: reading, recognition, and the settings that follow."""
