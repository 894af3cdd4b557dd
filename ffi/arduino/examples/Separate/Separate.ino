// Four sensors on A0 to A3 hear six sources; this says which are on, and how strong.
//
// model.h is a small model to try. One of your own:
//   spikelet train --model gsc --latents 6 recordings.csv --out model.spk
//   spikelet export model.spk --format c --out model.h
#include <spikelet.h>

#include "model.h"

static MODEL_ALIGNED unsigned char memory[MODEL_STATE_SIZE]; // all that the library ever uses
static spk_state *state;

static void complain(const char *what, spk_status status)
{
    Serial.print(what);
    Serial.print(": ");
    Serial.println(spk_status_str(status));
}

void setup()
{
    Serial.begin(115200);
    spk_status status = spk_init(memory, sizeof memory, model_blob, sizeof model_blob, &state);
    if (status != SPK_OK) {
        complain("spk_init", status); // a blob that is damaged or too new
        for (;;)
            ;
    }
}

void loop()
{
    const int pins[MODEL_DIMS] = {A0, A1, A2, A3};
    float sample[MODEL_DIMS];
    spk_estimate found;

    // In the units that the model was trained in: here full scale is from -1 to 1.
    for (int i = 0; i < MODEL_DIMS; i++)
        sample[i] = (float)(analogRead(pins[i]) - 512) / 512.0f;
    spk_status status = spk_process(state, sample, MODEL_DIMS, &found);
    if (status != SPK_OK) {
        complain("spk_process", status);
        return;
    }
    for (int h = 0; h < MODEL_LATENTS; h++) {
        if (found.activity[h] > 0.5f) {
            Serial.print("source ");
            Serial.print(h);
            Serial.print(" ");
            Serial.println(found.mean[h], 4);
        }
    }
    delay(10);
}
