"""Tables that are files of a lake: which of them a query needs, fetched, opened, changed."""
