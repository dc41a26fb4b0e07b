/*
 * CRC-32C on the host: the checksum of iSCSI (polynomial 0x1edc6f41), of which processors with
 * SSE4.2 have an instruction. "123456789" has 0xe3069283. Pure; any thread.
 *
 * A polynomial over GF(2) below is 32 bits with x^0 in the highest one, modulo the polynomial of
 * the checksum. Source: RFC 3720, appendix B.4; Koopman, DSN 2002, table 1 (what it detects).
 */
#ifndef KN_CRC32C_H
#define KN_CRC32C_H

#include "tollens.h"

/* How to compute it. */
enum kn_crc32c_way {
    KN_CRC32C_BEST,        /* by the instruction where the processor has it */
    KN_CRC32C_TABLE,       /* by a table, on any processor */
    KN_CRC32C_INSTRUCTION, /* the table where the processor has none */
    KN_CRC32C_WAYS
};

/* The checksum of count bytes; 0 for none. */
TOL_API uint32_t kn_crc32c(const void *bytes, size_t count, enum kn_crc32c_way way);

/* Whether this processor has the instruction and the compiler could use it. */
TOL_API bool kn_crc32c_has_instruction(void);

/* The checksum of two ranges one after the other, from theirs and the size of the second. */
TOL_API uint32_t kn_crc32c_join(uint32_t first, uint32_t second, uint64_t second_bytes);

/* For the device's part: the product of two polynomials, x to the power of bits, and
 * the remainder of a polynomial followed by a byte. */
uint32_t kn_crc32c_multiply(uint32_t a, uint32_t b);
uint32_t kn_crc32c_power(uint64_t bits);
uint32_t kn_crc32c_append(uint32_t remainder, uint8_t byte);

#endif
