"""What a study has found: statistics, tables, figures and pages."""
