"""The command line, one file per command. A command's module is imported when it is called for."""
