"""`kernelwright profile`: what a kernel does on a GPU that is not here.

`command` is the door, `programs` profiles whole programs, `told` puts a profile into words, `profile_page` into HTML.
"""
