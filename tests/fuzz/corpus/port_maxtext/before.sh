env a=1 x.py
