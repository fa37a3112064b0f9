/*
 * Forgets the field macros, so that a row of calls.def can be expanded in another way.
 * Included more than once, on purpose.
 */
#undef FD
#undef FD2
#undef LEN
#undef OFF
#undef OFF2
#undef WHENCE
#undef FLAGS
#undef MODE
#undef PEER
#undef TAG
#undef PEER2
#undef TAG2
#undef COUNT
#undef COMM
#undef FREED
#undef REQ
#undef CMD
#undef UID
#undef GID
#undef ADDR
#undef FILEH
#undef COPY
#undef IDENT
#undef PATH
#undef PATH2
#undef TEXT
