/*
 * ChaCha on the host: the vectors of RFC 8439, and of draft-strombergson-chacha-test-vectors for
 * fewer rounds.
 */
#include "seal/chacha.h"

#include "seal/hex.h"

#include <criterion/criterion.h>
#include <string.h>

static void must_make(const char *key, const char *nonce, uint32_t counter, unsigned rounds,
                      const char *expected) {
    uint8_t k[32] = {0}, n[12] = {0}, wanted[64], made[64];
    struct seal_stream stream;
    kn_hex(key, k, sizeof k);
    kn_hex(nonce, n, sizeof n);
    cr_assert_eq(kn_hex(expected, wanted, sizeof wanted), sizeof wanted);
    kn_chacha_begin(k, n, &stream);
    kn_chacha_add(&stream, rounds, counter, NULL, made, sizeof made);
    cr_assert_arr_eq(made, wanted, sizeof made, "%u rounds, counter %u", rounds, counter);
}

#define COUNTING "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"

/* Section 2.3.2, and appendix A.1, 1 to 5. */
Test(chacha, a_block_is_that_of_the_rfc) {
    must_make(COUNTING, "000000090000004a00000000", 1, 20,
              "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
              "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e");
    must_make(ZEROS, "", 0, 20,
              "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
              "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586");
    must_make(ZEROS, "", 1, 20,
              "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
              "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f");
    must_make("0000000000000000000000000000000000000000000000000000000000000001", "", 1, 20,
              "3aeb5224ecf849929b9d828db1ced4dd832025e8018b8160b82284f3c949aa5a"
              "8eca00bbb4a73bdad192b5c42f73f2fd4e273644c8b36125a64addeb006c13a0");
    must_make("00ff", "", 2, 20,
              "72d54dfbf12ec44b362692df94137f328fea8da73990265ec1bbbea1ae9af0ca"
              "13b25aa26cb4a648cb9b9d1be65b2c0924a66c54d545ec1b7374f4872e99f096");
    must_make(ZEROS, "000000000000000000000002", 0, 20,
              "c2c64d378cd536374ae204b9ef933fcd1a8b2288b3dfa49672ab765b54ee27c7"
              "8a970e0e955c14f3a88e741b97c286f75f8fc299e8148362fa198a39531bed6d");
}

Test(chacha, fewer_rounds_are_those_of_the_draft) {
    must_make(ZEROS, "", 0, 12,
              "9bf49a6a0755f953811fce125f2683d50429c3bb49e074147e0089a52eae155f"
              "0564f879d27ae3c02ce82834acfa8c793a629f2ca0de6919610be82f411326be");
    must_make(ZEROS, "", 0, 8,
              "3e00ef2f895f40d67f5bb8e81f09a5a12c840ec3ce9a7f3b181be188ef711a1e"
              "984ce172b9216f419f445367456d5619314a42a3da86b001387bfdb80e0cfe42");
}

/* Section 2.4.2: 114 bytes, so the second block is used in part. */
Test(chacha, a_text_is_encrypted_as_in_the_rfc) {
    static const char text[] = "Ladies and Gentlemen of the class of '99: If I could offer you "
                               "only one tip for the future, sunscreen would be it.";
    static const char expected[] =
        "6e2e359a2568f98041ba0728dd0d6981e97e7aec1d4360c20a27afccfd9fae0bf91b65c5524733ab8f593dab"
        "cd62b3571639d624e65152ab8f530c359f0861d807ca0dbf500d6a6156a38e088a22b65e52bc514d16ccf806"
        "818ce91ab77937365af90bbf74a35be6b40b8eedf2785e42874d";
    uint8_t key[32], nonce[12], wanted[sizeof text - 1], made[sizeof text - 1];
    struct seal_stream stream;
    kn_hex(COUNTING, key, sizeof key);
    kn_hex("000000000000004a00000000", nonce, sizeof nonce);
    cr_assert_eq(kn_hex(expected, wanted, sizeof wanted), sizeof wanted);
    kn_chacha_begin(key, nonce, &stream);
    kn_chacha_add(&stream, 20, 1, text, made, sizeof made);
    cr_assert_arr_eq(made, wanted, sizeof made);
    kn_chacha_add(&stream, 20, 1, made, made, sizeof made); /* in place, and back */
    cr_assert_arr_eq(made, text, sizeof made);
}

/* Eight blocks are made at a time: more of them, at every length, are the single ones. */
Test(chacha, long_key_streams_are_their_blocks) {
    enum { LONG = 64 * 21 };
    uint8_t key[32], nonce[12] = {1, 2, 3}, whole[LONG], block[64], part[LONG];
    struct seal_stream stream;
    kn_hex(COUNTING, key, sizeof key);
    kn_chacha_begin(key, nonce, &stream);
    kn_chacha_add(&stream, 20, 7, NULL, whole, sizeof whole);
    for (uint32_t i = 0; i < LONG / 64; i++) {
        kn_chacha_add(&stream, 20, 7 + i, NULL, block, sizeof block);
        cr_assert_arr_eq(whole + 64 * i, block, sizeof block, "block %u", i);
    }
    for (size_t bytes = 0; bytes < LONG; bytes += 13) {
        memset(part, 0, sizeof part);
        kn_chacha_add(&stream, 20, 7, NULL, part, bytes);
        cr_assert(memcmp(part, whole, bytes) == 0 && part[bytes] == 0, "%zu bytes", bytes);
    }
}

Test(chacha, other_rounds_are_not_had) {
    cr_assert(kn_chacha_has(20) && kn_chacha_has(12) && kn_chacha_has(8));
    cr_assert(!kn_chacha_has(0) && !kn_chacha_has(10) && !kn_chacha_has(4));
}
