"""Code without a script of its own: does the driver that gradfix makes come to the verdict that is right?"""
