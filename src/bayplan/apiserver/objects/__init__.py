"""What is done with objects: create, update, patch, apply, delete, get, list and watch."""
