/* The model and its samples, as they are on disk. The library refuses a blob that is not 8-byte aligned. */
    .section .rodata.model, "a"

    .global model_blob, model_blob_size, model_samples, model_samples_size

    .balign 8
model_blob:
    .incbin MODEL_BLOB
1:
    .balign 8
model_samples:
    .incbin MODEL_SAMPLES
2:
    .balign 4
model_blob_size:
    .long 1b - model_blob
model_samples_size:
    .long 2b - model_samples

    .section .note.GNU-stack, "", %progbits
