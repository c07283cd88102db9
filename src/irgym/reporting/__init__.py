"""Results for people: tables for the terminal, pages, plots and pictures."""
