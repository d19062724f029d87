"""Long texts cut into the pieces that are embedded and indexed."""
