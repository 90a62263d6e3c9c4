"""Plans which offsets a query reads. Pure: no Spark, no sockets, no clock."""
