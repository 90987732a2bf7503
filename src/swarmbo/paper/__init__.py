"""What belongs to the paper: its conditions, its published numbers, its studies."""
