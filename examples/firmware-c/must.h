/* A call that has to succeed: else the program says why, and ends. */
#ifndef MUST_H
#define MUST_H

#include "board.h"
#include "model.h"
#include "spikelet.h"

/* Not part of any caller's frame, which is what a product needs of the stack. */
static void __attribute__((noinline, noreturn)) fail(spk_status status, const char *what)
{
    char features[96];

    print(what);
    print(": ");
    if (spk_missing_features(model_blob, model_blob_size, features, sizeof features) == SPK_ERR_BLOB_LEFT_OUT) {
        print("the model needs features that the library was built without: ");
        print(features);
    } else {
        print(spk_status_str(status));
    }
    print("\n");
    board_exit(1);
}

static void must(spk_status status, const char *what)
{
    if (status != SPK_OK)
        fail(status, what);
}

#endif
