"""The lake: planning over encrypted Iceberg tables, and the thesis' chapter 6 beside it."""
