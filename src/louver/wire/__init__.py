"""The only things that cross between the trusted client and an untrusted machine."""
