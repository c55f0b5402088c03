# models: training programs and what they share.

CFLAGS_models = -Ilibhvd/include -Idevice/include -Imodels
