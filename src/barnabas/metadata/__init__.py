"""The cluster metadata: records of the metadata log become immutable images.

image.py is the image; changes.py applies records to it; snapshot.py turns it back into records; loader.py
applies committed records and publishes one image after another.
"""
