"""What every other folder builds on: files, checks, text, figures, progress."""
