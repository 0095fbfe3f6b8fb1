/* metal_mock_link.c: the second of the two libraries that the backend opens; what it has comes from the first. */
typedef int metal_mock_link_unused;
