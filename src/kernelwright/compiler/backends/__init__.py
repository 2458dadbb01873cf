"""Languages: a Sketch in, one self-contained kernel file out. A backend imports `lower/`, `offdevice/` and itself."""
