#include "cube.h"

#include <math.h>

unsigned soft_cube_face(const double direction[3]) {
    double x = direction[0], y = direction[1], z = direction[2];
    if (fabs(x) >= fabs(y) && fabs(x) >= fabs(z)) return x >= 0 ? 0 : 1;
    if (fabs(y) >= fabs(z)) return y >= 0 ? 2 : 3;
    return z >= 0 ? 4 : 5;
}

void soft_cube_turn(unsigned face, const double v[3], double turned[3]) {
    double x = v[0], y = v[1], z = v[2];
    const double all[6][3] = {{-z, -y, x}, {z, -y, -x}, {x, z, y},
                              {x, -z, -y}, {x, -y, z},  {-x, -y, -z}};
    for (int i = 0; i < 3; i++) turned[i] = all[face][i];
}

/* The opposite of soft_cube_turn. */
static void turn_back(unsigned face, const double turned[3], double v[3]) {
    double s = turned[0], t = turned[1], m = turned[2];
    const double all[6][3] = {{m, -t, -s}, {-m, -t, s}, {s, m, t},
                              {s, -m, -t}, {s, -t, m},  {-s, -t, -m}};
    for (int i = 0; i < 3; i++) v[i] = all[face][i];
}

unsigned soft_cube_place(const double direction[3], double at[2]) {
    unsigned face = soft_cube_face(direction);
    double turned[3];
    soft_cube_turn(face, direction, turned);
    for (int i = 0; i < 2; i++) at[i] = (turned[i] / turned[2] + 1) / 2;
    return face;
}

/* In half texels a face goes from -size to size, and the middle of a texel is an odd number away
 * from its edge. A texel outside is folded over the edge: it is as far along the other face as it
 * is outside of this one. */
unsigned soft_cube_beside(unsigned face, uint32_t size, int64_t index[2]) {
    double edge = size, turned[3] = {0, 0, edge}, direction[3];
    for (int i = 0; i < 2; i++) {
        turned[i] = (double)(2 * index[i] + 1) - edge;
        if (fabs(turned[i]) < edge) continue;
        turned[i] = copysign(edge, turned[i]);
        turned[2] = edge - 1;
    }
    turn_back(face, turned, direction);
    face = soft_cube_face(direction);
    soft_cube_turn(face, direction, turned);
    for (int i = 0; i < 2; i++) index[i] = (int64_t)((turned[i] + edge - 1) / 2);
    return face;
}
