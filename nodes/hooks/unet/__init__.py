"""UNets: SD 1.x, 2.x, SDXL, SSD-1B and the spatial layers of SVD."""
