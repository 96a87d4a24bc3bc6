"""The demo: a support agent over a small ticket database.

It is written as a user would write it: of Reattach it knows the public SDK only. ``agents`` registers the two agents, ``support`` tells
one from the data (``script``) or lets a model decide (``converse``, over ``model``), ``tickets`` is the database that notes are added
to, and ``tools`` is what an agent may do with it.
"""
