"""The page: the store and the jobs of the command line, in a browser. In: requests of a browser on this machine. Out: a page, JSON, events.

1. `server.py`       starts uvicorn, says where; `app.py` puts the routes together; `guard.py` stands before all of them
2. `listing.py`      all runs of the store in memory, followed several times a second; `live.py` tells browsers what changed
3. `run_routes.py`   one run: steps, texts, kernels; `curves.py` best over time and the population; `privacy.py` what is not shown
4. `requests.py`     what a browser may ask for, as a JobSpec; `submissions.py` the routes; `queue.py` starts `kernelwright resume`
                     in a process of its own, ends and resumes it; `command_line.py` the command that does the same
5. `questions.py`    short work that is no run: describe a task, judge a kernel, check and run a sketch, what this machine can do
6. `reports.py`      reports of benchmarks, and two compared
7. `site/`           the built page: its source is in web/ of the repository, `make web` builds it

No file of a stranger is run in this process: kernels and tasks run in the judge's sandbox, sketches are parsed and interpreted there.
"""
