"""Results into tables, figures and one page."""
