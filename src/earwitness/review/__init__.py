"""The local web app for people's work."""
