"""The client side: requests on the control socket, event subscriptions, and queries."""
