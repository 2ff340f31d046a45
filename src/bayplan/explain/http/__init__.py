"""Explanations over HTTP: endpoints, who may ask how much about which pods, and forwarding from another machine."""
