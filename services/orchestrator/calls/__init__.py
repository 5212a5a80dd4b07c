"""One tool call, from what the model wrote to what it is answered (pipeline.md).

`registry` knows which tools an agent holds, `admission` takes a call to the gate, `pipeline` runs
what may run, `closing` answers calls that will not. The turn loop uses `CallPipeline` and the
values of `contract`.
"""
