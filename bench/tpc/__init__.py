"""TPC-H and TPC-DS with every column ENC, under the three policies of the tests."""
