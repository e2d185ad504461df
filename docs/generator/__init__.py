"""What the site adds to the Markdown files: the sidebar, the reference, pictures for dark pages."""
