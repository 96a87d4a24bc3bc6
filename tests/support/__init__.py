"""What the tests share: real servers, real processes, faults, and what must hold after every test."""
