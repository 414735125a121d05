"""What every other folder stands on: files, validation, text, plots, progress."""
