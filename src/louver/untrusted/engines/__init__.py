"""Engines: machines that compute on ciphertext."""
