"""From tables to series: read, recognised, and the settings that follow from them."""
