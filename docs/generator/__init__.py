"""The parts of the site beyond the Markdown files: sidebar, reference, pictures for dark pages."""
