"""One file per family of APIs. Each opens with its contract and ends with its rows for the table of APIs."""
