"""What the cluster knows: metadata records become an immutable image.

image.py is what everybody reads; changes.py applies records to it; snapshot.py turns an image back into
records; loader.py takes what the quorum has committed and publishes one image after another.
"""
