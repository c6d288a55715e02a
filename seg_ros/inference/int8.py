"""Which model is run for a precision: int8 has a file of its own."""

from seg_ros.errors import ConfigError
from seg_ros.model_file import Model, load_model


def for_precision(model: Model, precision: str) -> Model:
    """Give the model itself, or for 'int8' the quantised one beside its file.

    :param precision: 'auto', or what is asked for. An int8 file is int8 at 'auto', too.
    :raises ConfigError: there is no quantised file of this model, or the model is one and
        another precision is asked for.
    :raises ModelFileError: the quantised file is damaged.
    """
    if model.precision == 'int8':
        if precision not in ('auto', 'int8'):
            raise ConfigError(f'precision {precision!r}: {model.path} is quantised to int8; leave '
                              'the precision at auto, or give the model that it was made from')
        return model
    if precision != 'int8':
        return model
    if model.path is None:
        raise ConfigError("precision 'int8': this model has not been quantised; save it and make "
                          'an int8 file of it with seg_quantize')
    beside = model.path.with_name(f'{model.path.stem}_int8.onnx')
    remedy = f'make it with: seg_quantize PICTURES --model {model.path} --out {beside}'
    if not beside.exists():
        raise ConfigError(f"precision 'int8': {beside} is not there; {remedy}")
    quantised = load_model(beside)
    if quantised.precision != 'int8' or quantised.spec != model.spec:
        raise ConfigError(f"precision 'int8': {beside} was not made of {model.path} as it is now; "
                          f'{remedy}')
    return quantised
