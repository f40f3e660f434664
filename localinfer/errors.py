"""The error tree, its exit codes and HTTP statuses, and its way over the wire.

    LocalInferError(message, hint)
    ├── BadRequest(param)                a value the person gave is wrong
    ├── ModelNotFound                    no model of that name or path
    ├── ModelFileInvalid                 the file is not a model that can be loaded
    ├── ContextOverflow(prompt_tokens, context)
    ├── DoesNotFit                       the model or context needs more memory than there is
    ├── OutOfMemory                      memory ran out while loading or generating
    ├── BackendUnavailable               the engine library, or the device asked for, cannot be used
    ├── WorkerDied(cause)                the worker process ended by itself
    ├── DownloadFailed                   fetching a model did not succeed
    ├── Gated                            the hub gives the model only to those who accepted its terms
    ├── Offline                          it would need the network, which is off
    ├── NotEnoughDisk(needed_bytes, free_bytes)
    ├── StorageUnavailable               a folder or file of ours cannot be written
    └── ConversationNotFound             no conversation of that number

The message says what is wrong in the person's terms, the hint says what to do.
"""

from localinfer.types import Fault

Field = int | str | None


class LocalInferError(Exception):
    """Base of every error a person sees. ``exit_code`` and ``http_status`` are the one table of both."""

    exit_code = 1
    http_status = 500
    fields: tuple[str, ...] = ()

    def __init__(self, message: str, hint: str = "", **values: Field) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        for name in self.fields:
            setattr(self, name, values.get(name))

    def fault(self) -> Fault:
        """This error as a value for the wire."""
        return Fault(
            kind=type(self).__name__,
            message=self.message,
            hint=self.hint,
            fields={name: getattr(self, name) for name in self.fields},
        )


class BadRequest(LocalInferError):
    exit_code = 2
    http_status = 400
    fields = ("param",)
    param: str | None


class ModelNotFound(LocalInferError):
    exit_code = 3
    http_status = 404


class ModelFileInvalid(LocalInferError):
    http_status = 422


class ContextOverflow(LocalInferError):
    exit_code = 2
    http_status = 400
    fields = ("prompt_tokens", "context")
    prompt_tokens: int | None
    context: int | None


class DoesNotFit(LocalInferError):
    exit_code = 4
    http_status = 507


class OutOfMemory(LocalInferError):
    exit_code = 4
    http_status = 507


class BackendUnavailable(LocalInferError):
    http_status = 503


class WorkerDied(LocalInferError):
    http_status = 503
    fields = ("cause",)
    cause: str | None


class DownloadFailed(LocalInferError):
    http_status = 502


class Gated(LocalInferError):
    http_status = 403


class Offline(LocalInferError):
    exit_code = 5
    http_status = 503


class NotEnoughDisk(LocalInferError):
    http_status = 507
    fields = ("needed_bytes", "free_bytes")
    needed_bytes: int | None
    free_bytes: int | None


class StorageUnavailable(LocalInferError):
    """A folder or file that localinfer needs cannot be read or written."""


class ConversationNotFound(LocalInferError):
    exit_code = 3
    http_status = 404


_BY_NAME: dict[str, type[LocalInferError]] = {cls.__name__: cls for cls in LocalInferError.__subclasses__()}


def from_fault(fault: Fault) -> LocalInferError:
    """The error that ``fault`` describes; an unknown kind becomes the base class."""
    return _BY_NAME.get(fault.kind, LocalInferError)(fault.message, fault.hint, **fault.fields)
