"""The command line, one module per command. `main` imports only the module of the chosen command."""
