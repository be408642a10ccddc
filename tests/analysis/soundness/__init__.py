"""Random documents, run on marked texts: a mark never reaches a place that the analysis has called clean."""
