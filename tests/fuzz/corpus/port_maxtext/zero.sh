python3 -m maxtext.train base.yml ici_fsdp_parallelism=8 ici_data_parallelism=0 =3 _=
