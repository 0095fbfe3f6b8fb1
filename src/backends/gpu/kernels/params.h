/* params.h: the parameters of the kernels, shared by the host's C and every dialect: plain structs of 4-byte fields.
 * Strides and offsets count elements. Types are sotto_dtype. dim[0] is the innermost dimension. */

/* y[i] = f(x[i]) over a shape of up to four dimensions; also every copy with cast or permutation */
struct unary_p {
    int n; /* elements */
    int dim[4], x_stride[4], y_stride[4];
    int x_type, y_type;
    int wide; /* an item has four neighbours, which may be read and written at once */
    int op;   /* enum of element.krn */
    float a, b;
};

/* y[i] = a[i] op b[i]; strides of 0 broadcast */
struct binary_p {
    int n;
    int dim[4], a_stride[4], b_stride[4], y_stride[4];
    int a_type, b_type, y_type;
    int wide; /* as above; of b also one element for all four, when its stride is 0 */
    int op;
};

/* One group a row: row r is (r % dim1, r / dim1 % dim2, r / dim1 / dim2). */
struct rows_p {
    int n, dim1, dim2;                         /* elements of a row */
    int x_stride[4], y_stride[4], m_stride[4]; /* m: the mask of softmax; its strides are 0 where it broadcasts */
    int x_type, y_type, m_type, has_mask;
    int wide; /* of norms: all may be read and written four elements at a time */
    float a;  /* eps, or the scale of softmax */
};

/* One group a row of n elements, as rows_p: its k largest go to y and, y_stride[1] behind, their indices. */
struct top_k_p {
    int n, k, dim1;
    int x_stride[4], y_stride[4];
    int x_type;
};

/* One group a position: heads of d elements, of which n_rot are turned. Row r is position r % n, batch r / n. */
struct rope_p {
    int d, heads, n, n_rot;
    int halves, has_factors, all_positions; /* pairs i, i + n_rot / 2; positions for each batch */
    int x_stride[4], y_stride[4];
    int x_type, y_type;
    float step,
        step_rest; /* of log2 of the frequency from pair to pair; their sum, `step` short enough to be multiplied exactly */
    float turns; /* a position's turns of pair 0 */
    float magnitude;
};

/* Windows over images x [b, h, w, c]; y [b, h_out, w_out, ..]. [0] is along w, [1] along h. */
struct window_p {
    int c, size[2], out[2]; /* channels, of x, of y */
    int window[2], step[2], pad[2], dilation[2];
    int x_stride[4], x_type;
    int eights, x_wide, w_wide; /* eight channels follow one another, and may be read at once; of the weights */
    int m, n, k;                /* places in all, elements of y a place, elements under the window */
    int w_type, y_row, y_type, has_bias, act;
};

/* y[i, :] = table[rows[i], :] */
struct get_rows_p {
    int n, n_rows, n_table; /* elements of a row, rows wanted, rows of the table */
    int type, table_row, rows_stride, y_row;
    int y_type;
    int in_blocks; /* the table is blocks of q8_0 as in a file, table_row in bytes: cells of a cache */
};

/* table[rows[i], :] = x[i, :] */
struct set_rows_p {
    int n, n_rows, n_table;
    int table_type, table_row, rows_stride, x_row; /* table_row of q8_0 in bytes */
    int x_type;
};

/* Rows of elements into blocks of q8_0: y[z, r, i] = x[z, r, i]; strides of y in bytes */
struct to_blocks_p {
    int n, width, dim1, dim2;     /* blocks in all, of a row; rows */
    int x_stride[3], y_stride[3]; /* of rows, and of what is above */
    int x_type;
};

/* y[z, r, c] = act(sum_i x[z, r, i] w[z, c, i] + bias[c]) + residual[z, r, c]; z = z3 * batch2 + z2.
 * Row r of x starts at element x_first + r * x_row of its product; elements outside [0, x_len) count as 0, which makes a
 * convolution a product of overlapping rows. */
struct product_p {
    int m, n, k;
    int batch2;
    int x_type, x_first, x_len, x_row, x_b2, x_b3;
    int x_wide, w_wide; /* rows may be read eight elements at a time */
    int w_type, w_row, w_b2, w_b3;
    int y_type, y_row, y_b2, y_b3;
    int r_type, r_row, r_b2, r_b3;
    int has_bias, has_residual, act;
};

/* Rows of k elements as bytes; row r is row r % dim1 of matrix (r / dim1 % dim2, r / dim1 / dim2) of x. */
struct bytes_p {
    int n_rows, k, dim1, dim2;
    int x_stride[4], x_type;
    int pairs; /* of eight elements first the even ones */
    int wide;  /* rows may be read eight elements at a time */
};

/* q [b, n_q, h, d], k and v [b, n_k, h_kv, d], y [b, n_q, h * d] */
struct attention_p {
    int n_q, n_k, h, h_kv, d;
    int q_type, q_row, q_head, q_batch;
    int k_type, k_row, k_head, k_batch;
    int v_type, v_row, v_head, v_batch;
    int y_type, y_row, y_batch;
    int causal;
    float scale;
};

/* q [n_row, h, d], k and v [n_cell, h_kv, d]; the keys of a row are cut into n_split parts, whose results are joined. */
struct cache_p {
    int n_row, n_cell, h, h_kv, d;
    int q_type, q_row, q_head;
    int k_type, k_row, k_head; /* rows and heads of q8_0 are counted in bytes */
    int v_type, v_row, v_head;
    int y_type, y_row;
    int has_index, n_list, max_kv;
    int n_split;
    int window; /* keys that a row sees at most, the last ones; 0: all */
    float scale;
};
