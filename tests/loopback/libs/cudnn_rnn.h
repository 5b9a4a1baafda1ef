/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The recurrent network of cudnn_rnn, which its cuDNN expects too. */
#ifndef CUDNN_RNN_H
#define CUDNN_RNN_H

#define RNN_INPUT   12
#define RNN_HIDDEN  20
#define RNN_LAYERS  2
#define RNN_BATCH   3
#define RNN_LENGTH  7
#define RNN_WEIGHTS (16 * 4096)
#define RNN_STATES  1024
#define RNN_WORK    512
#define RNN_RESERVE 256

/* The n-th pointer: nobody reads what is there. */
#define RNN_AT(n)    ((void *)(0x70000000ul + 0x100000ul * (n)))
#define RNN_POINTERS 10
/* And one of nothing. */
#define RNN_NOWHERE ((void *)0x60000100ul)

#endif
