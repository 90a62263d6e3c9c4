"""Broker settings: their declarations, the properties file, dynamic changes, and DescribeConfigs.

broker_settings.py holds the typed values that the rest of the server reads. The files named after themes hold
only declarations; catalog.py joins them. endpoints.py parses listeners and voters. view.py reports the
effective value of a setting and its source; dynamic.py applies changes; reference.py generates the page for
users.
"""
