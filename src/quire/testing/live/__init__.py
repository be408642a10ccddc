"""Measure documents on real models: rows, repeats, graders, intervals, receipts. Every run here costs money or time."""
