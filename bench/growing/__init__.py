"""The parts of bench/growth.py: models that grow, what is measured of them, records, tables and plots."""
