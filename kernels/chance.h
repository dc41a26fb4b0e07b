/*
 * Chance: the constants of error bounds that drawn data exceed with a stated probability.
 *
 * A worst-case bound of a sum of k products grows with k times the sum of magnitudes. Rounding
 * errors and the signs of drawn data are independent, so an error grows with sqrt(k) times the norm
 * N = sqrt(sum of p_l^2) of the products p_l. This file states for which constant.
 *
 * Assumptions. Data: the p_l have independent signs, each as likely as the other, whatever their
 * magnitudes (kn_distribution_has_signs). Rounding: given the data and the earlier errors, the
 * error of a rounding to nearest has mean 0 and is at most u times what is rounded (Higham and
 * Mary, A new approach to probabilistic rounding error analysis, SISC 41(5), 2019, model 2.1, in
 * the weaker form of Connolly, Higham and Mary, SISC 43(1), 2021). Ipsen and Zhou, Probabilistic
 * error analysis for inner products, SIMAX 41(4), 2020, use the same martingale. That signs cancel
 * in the sums too is from Higham and Mary, Sharper probabilistic backward error analysis, SISC
 * 42(5), 2020.
 *
 * 1. Signs. A sum of e_l x_l with independent signs e_l exceeds L sqrt(sum x_l^2) with a
 *    probability of at most 2 exp(-L^2 / 2) (Hoeffding).
 * 2. Sums of squares. Let s_1 ... s_r be sums of any of the p_l, and V = sum of s_i^2. V is a
 *    quadratic form of the signs with a trace of at most T = r N^2, so for 2 c T < 1
 *    E exp(c V) <= (1 - 2 c T)^(-1/2): signs are below normal variables, for which it is
 *    prod (1 - 2 c m_i)^(-1/2) with the eigenvalues m_i, which are 0 or more and add up to at
 *    most T. With 2 c T = 0.98, V > L^2 T has a probability of at most
 *    7.08 exp(-0.49 L^2). Then sum |s_i| <= sqrt(r V) <= L r N.
 * 3. Roundings. The errors d_i s_i of r roundings of the s_i, |d_i| <= u, have the sum X, and given
 *    the data E exp(t X) <= exp(t^2 u^2 V / 2) (Azuma). With 2. and t^2 u^2 T = 0.98, |X| > C u
 *    sqrt(r) N has a probability of at most 14.15 exp(-0.9899 C).
 * 4. Cuts. If d_i is not independent of the signs, but has the sign of p_i against it, then E
 *    exp(t X - t^2 u^2 V / 2) <= 1 still, and the inequality of Cauchy and Schwarz gives 3. with
 *    twice the C: 5.32 exp(-0.4949 (2 C)).
 *
 * KN_SIGNS is L and KN_CHAOS is C. 1. fails with 1e-19, 2. with 8.1e-19, 3. with 6.4e-19 and 4.
 * with 2.4e-19. A bound uses each at most twice, so it fails with less than 3.6e-18; of the 2^28
 * elements that a run may judge, one fails with a probability below 1e-9. (A full run of H5 and H6
 * judges fewer than 2^27 by such bounds.)
 */
#ifndef KN_CHANCE_H
#define KN_CHANCE_H

#define KN_SIGNS 9.44
#define KN_CHAOS 45.0

/* How often errors of the second order can enlarge a sum of k products in float: what is rounded is
 * itself off by a factor of at most this (u k from cuts, and 45 * 1.3 u sqrt(k) from roundings). */
#define KN_CHANCE_SECOND_ORDER(k) (1 + 0x1p-24 * ((k) + 64 * sqrt(k)))

#endif
